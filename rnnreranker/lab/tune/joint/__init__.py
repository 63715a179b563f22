"""Labels and training tuned together."""
