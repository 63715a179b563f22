"""The laboratory: studies, tunings, recoveries, diagnoses."""
