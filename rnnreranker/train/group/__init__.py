"""What trainings on groups share: a positive and its negatives, read as texts."""
