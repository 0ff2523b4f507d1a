"""REST: archives of what a tenant has."""

from typing import Any, cast

from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from apps.accounts.models import Tenant
from apps.governance.export import jobs
from apps.governance.export.sending import send_export
from apps.governance.models import Export
from kernel.rest.caller import Access
from kernel.rest.views import ScopedViewSet


class ExportSerializer(serializers.ModelSerializer[Export]):
    """An archive of everything that the tenant has, and how far it is."""

    class Meta:
        model = Export
        fields = [
            *("id", "state", "actor", "part", "rows_done", "rows_total", "snapshot_at", "size", "sha256"),
            *("reason", "created_at", "finished_at", "expires_at"),
        ]
        read_only_fields = fields


class ExportsApi(ScopedViewSet[Export]):
    """Archives of everything that the tenant has: for owners and admins."""

    needs = {"*": Access.MANAGE}
    serializer_class = ExportSerializer

    def rows(self) -> QuerySet[Export]:
        """Return the tenant's exports."""
        return Export.objects.all()

    @extend_schema(request=None, responses={201: ExportSerializer})
    def create(self, request: Any) -> Response:
        """Ask for an archive; it is written in the background. A tenant has at most one under way."""
        del request
        export = jobs.request_export(tenant_id=self.caller.tenant_id, actor=self.caller.actor)
        return Response(ExportSerializer(export).data, status=201)

    @extend_schema(responses={204: None})
    def destroy(self, request: Any, pk: Any = None) -> Response:
        """End an export that is under way, or delete the file of one that is ready. That there was one stays to be read."""
        del request, pk
        jobs.cancel_export(export_id=self.get_object().pk, actor=self.caller.actor)
        return Response(status=204)

    @extend_schema(
        responses={
            (200, "application/zip"): OpenApiTypes.BINARY,
            (206, "application/zip"): OpenApiTypes.BINARY,
        }
    )
    @action(detail=True, methods=["get"])
    def download(self, request: Any, pk: Any = None) -> HttpResponseBase:
        """Fetch the archive once it is ready; `Range` goes on where a download broke off."""
        del pk
        export = self.get_object()
        sent = send_export(cast("HttpRequest", request), export, Tenant.objects.get(pk=self.caller.tenant_id))
        jobs.record_download(export=export, actor=self.caller.actor)
        return sent
