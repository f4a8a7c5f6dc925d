-- AAAA records for names that have none
function nodata(dq)
  if dq.qtype == pdns.AAAA then
    dq.followupFunction = "getFakeAAAARecords"
    dq.followupName = dq.qname
    dq.followupPrefix = "2001:db8:64::"
    return true
  end
  return false
end
