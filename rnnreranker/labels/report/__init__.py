"""Pages, pictures and tables of labels."""
