"""How pictures of the gallery look; set before every example, so that these stay short."""

from typing import Any

#: The gallery follows the chapters; what is not named here comes last.
ORDER = (
    "plot_path", "plot_less_is_more", "plot_early_stopping", "plot_features_or_centers",
    "plot_one_pass", "plot_new_class", "plot_forgetting", "plot_pendulum", "plot_own_kernel",
    "plot_regimes",
)  # fmt: skip
COLOURS = ["#c0143c", "#1f5fa8", "#e08a00", "#2a8a5f", "#7a4fa3", "#5c6577"]


def apply(gallery_conf: dict[str, Any], fname: str) -> None:
    """Set matplotlib's defaults."""
    import matplotlib as mpl
    from cycler import cycler

    mpl.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=COLOURS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": "#5c6577",
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
            "grid.color": "#e3e6ec",
            "grid.linewidth": 0.8,
            "legend.frameon": False,
            "lines.linewidth": 1.9,
            "figure.constrained_layout.use": True,
            "figure.dpi": 100,
            "font.size": 10,
        }
    )


class ChapterOrder:
    """Sorts the scripts of the gallery."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, filename: str) -> tuple[int, str]:
        """Return the place of a script."""
        name = filename.removesuffix(".py")
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)

    def __repr__(self) -> str:
        return "<ChapterOrder>"
