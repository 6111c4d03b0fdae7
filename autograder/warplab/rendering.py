"""HTML from Jinja2 templates: each stands beside the module that fills it in.

Whatever a template is given is escaped where it is put in, so that a student's text stays text. What a
template names and is not given is an error.
"""

import functools


def render(package, template, **values):
    """One template of a package, such as "profile.html.j2" of "warplab.simt", filled in with `values`."""
    return _templates(package).get_template(template).render(values)


@functools.cache
def _templates(package):
    import jinja2  # here, because `import warplab` shall not wait for it

    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
