{{/* Name of all objects: the release, with the chart's name if the release lacks it. */}}
{{- define "sixfold.name" -}}
{{- if contains "sixfold" .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-sixfold" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods; they never change. */}}
{{- define "sixfold.selector" -}}
app.kubernetes.io/name: sixfold
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sixfold.labels" -}}
{{ include "sixfold.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* The configuration: the value, or the file of the chart, which gets the encrypted listeners. */}}
{{- define "sixfold.config" -}}
{{- if .Values.config -}}
{{- .Values.config | trim -}}
{{- else -}}
{{- .Files.Get "files/sixfold.toml" | trim -}}
{{- with .Values.tls }}
{{- if .secretName }}

[tls]
# The secret with the certificate.
certificate = "/etc/sixfold-tls/tls.crt"
key = "/etc/sixfold-tls/tls.key"
{{- if .dot }}
listen-dot = ["[::]:853", "0.0.0.0:853"]
{{- end }}
{{- if .doh }}
listen-doh = ["[::]:443", "0.0.0.0:443"]
{{- end }}
{{- if .doq }}
listen-doq = ["[::]:853", "0.0.0.0:853"]
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
{{- end -}}
