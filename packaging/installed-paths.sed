# Texts of the source tree name documents as docs/NAME.md. In a package, the pages of the documents are here.
s,docs/\([a-z0-9/-]*\)README\.md,/usr/share/doc/sixfold/html/\1index.html,g
s,docs/\([a-z0-9/-]*\)\.md,/usr/share/doc/sixfold/html/\1.html,g
