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

{{/* The configuration: the value, or the file of the chart. */}}
{{- define "sixfold.config" -}}
{{- .Values.config | default (.Files.Get "files/sixfold.toml") | trim -}}
{{- end -}}
