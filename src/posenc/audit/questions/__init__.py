"""What is asked, one file a place."""
