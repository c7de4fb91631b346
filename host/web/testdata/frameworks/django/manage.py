import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.shortcuts import render
from django.urls import path

settings.configure(
    DEBUG=True, ROOT_URLCONF=__name__, SECRET_KEY="x", STATIC_URL="/static/", STATICFILES_DIRS=["static"], INSTALLED_APPS=["django.contrib.staticfiles"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "DIRS": ["templates"]}])

urlpatterns = [path("", lambda request: render(request, "page.html")), path("broken", lambda request: [][0])]

execute_from_command_line(sys.argv)
