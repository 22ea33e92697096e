"""imparo: kernel machines that fit your budget and then keep learning."""
__version__ = "0.1.0"
