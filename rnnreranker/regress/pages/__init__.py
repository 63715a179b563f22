"""The pages of records: of specs, and of the documentation."""
