# Texts of the source tree name documents as docs/NAME.md. In a package, the pages of the documents are here.
s,docs/\([a-z/-]*\)README\.md,/usr/share/doc/sixfold/html/\1index.html,g
s,docs/\([a-z/-]*\)\.md,/usr/share/doc/sixfold/html/\1.html,g
