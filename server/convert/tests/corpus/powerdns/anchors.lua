-- The root, the company, and a partner without signatures
readTrustAnchorsFromFile("/usr/share/dns/root.key")
addTA("company.example", "12345 13 2 00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF")
addNTA('partner.example', "waits for their new server")
