"""Says what hardware should reach, before anything is measured."""
