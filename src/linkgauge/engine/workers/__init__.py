"""Worker processes: what they are asked, what they answer, and who watches them."""
