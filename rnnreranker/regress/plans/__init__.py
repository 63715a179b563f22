"""From specs to steps, and steps carried out."""
