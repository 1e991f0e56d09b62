"""Models: what they are called, where their bytes come from, and whether the file here is the one meant.

`catalogue()` lists the known models, `resolve()` finds one that is here and checks its digest, `fetch()` brings one
here. Every failure is a ModelError of one line. Nothing here loads a model.
"""

from harness.models.catalogue_file import catalogue
from harness.models.entry import LocalModel, ModelEntry
from harness.models.errors import ModelError, ModelRequestError
from harness.models.fetching import fetch
from harness.models.local import resolve
from harness.models.settings import StoreSettings, store_settings

__all__ = [
    "LocalModel",
    "ModelEntry",
    "ModelError",
    "ModelRequestError",
    "StoreSettings",
    "catalogue",
    "fetch",
    "resolve",
    "store_settings",
]
