"""How much probability leaves the positives, learnt from judgements."""
