"""Names that attack a page."""

HOSTILE = "<img src=x onerror=alert(1)>"
MARKUP = "<img src=x onerror=document.title='broken'>"
CLOSING = "</script><script>alert(2)</script>"
