"""The course's colours, for everything that draws."""

# After Okabe and Ito (2008), each moved to a middle lightness: at least 3:1 against
# white and against #14181e.
PALETTE = {
    "blue": "#2a7fc4",
    "orange": "#d55e00",
    "green": "#0f9471",
    "purple": "#b5629a",
    "gold": "#b08000",
    "grey": "#7d8590",
}
