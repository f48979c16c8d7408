"""What authors of services use: decorators, types of arguments, and what a call is given."""
