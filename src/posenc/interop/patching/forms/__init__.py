"""The forms in which models want cosines and sines, one a file."""

from posenc.interop.patching.forms import complex_numbers, half_width, halves, repeated, rows
from posenc.interop.patching.forms.form import Angles, Form

OF_MODULES: tuple[Form, ...] = (
    halves.FORM,
    half_width.FORM,
    repeated.FORM,
    complex_numbers.FORM,
)
"""Forms of what a rotary module returns; which of them it is, is measured."""

ROWS: Form = rows.FORM
"""The form of tables that attention keeps itself."""

__all__ = ["OF_MODULES", "ROWS", "Angles", "Form"]
