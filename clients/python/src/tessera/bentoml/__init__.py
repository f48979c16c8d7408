"""The adapter that hosts BentoML's services as they are written."""
