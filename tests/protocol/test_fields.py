"""Values that several files share: what is no value names its mend."""

import pytest
from pydantic import TypeAdapter, ValidationError

from spoold.protocol.fields import Directory

DIRECTORY = TypeAdapter[str](Directory)


def test_an_absolute_path_is_a_directory() -> None:
    assert DIRECTORY.validate_python("/srv/work") == "/srv/work"


@pytest.mark.parametrize("value", ["", "work", "./work", "~/work", "/srv/\0work"])
def test_a_directory_that_means_another_one_elsewhere_is_refused(value: str) -> None:
    with pytest.raises(ValidationError, match="begin it with /"):
        DIRECTORY.validate_python(value)
