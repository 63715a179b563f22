"""Commands whose writes fail, or that are ended at one: what they say, what they leave, what a rerun makes."""
