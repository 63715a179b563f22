"""MaxSim of late interaction."""
