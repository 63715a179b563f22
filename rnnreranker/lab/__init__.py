"""The laboratory: studies, tunings, benchmarks, recoveries, diagnoses."""
