"""What pyproject.toml can't say: a wheel carries the folders conf, experiments and tasks inside the package."""

from pathlib import Path
from shutil import copytree, ignore_patterns

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithFolders(build_py):
    """An editable install finds the folders beside the package (harness/paths.py) and needs no copy."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for name in ("conf", "experiments", "tasks"):
            into = Path(self.build_lib, "harness", "shipped", name)
            copytree(name, into, dirs_exist_ok=True, ignore=ignore_patterns("__pycache__", ".pytest_cache"))


setup(cmdclass={"build_py": BuildWithFolders})
