"""Whom to tell when something goes wrong, in templates."""

from django import template
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.accounts.operators import operators_plain

register = template.Library()
register.simple_tag(operators_plain)


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
