"""Whom to tell when something goes wrong: what the installation says of itself, or who runs it in general."""

from django import template
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()
_NOBODY_NAMED = "whoever runs this installation"


@register.simple_tag
def operators() -> SafeString | str:
    """Return whom to tell, for a page: an address or a page as a link. What is no SafeString is escaped."""
    named = operators_plain()
    if named.startswith(("https://", "http://")):
        return format_html('<a href="{}">{}</a>', named, named)
    try:
        validate_email(named)
    except ValidationError:
        return named
    return format_html('<a href="mailto:{}">{}</a>', named, named)


@register.simple_tag
def operators_plain() -> str:
    """Return whom to tell, for a mail."""
    return " ".join(str(settings.OPERATOR_CONTACT).split()) or _NOBODY_NAMED
