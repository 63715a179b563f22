"""Studies of training: which labels, losses and candidates make the better query encoder, with seeds and intervals."""
