"""What trainings on single texts share."""
