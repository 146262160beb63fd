{{/* The processes by the names that values use: what their objects, containers and commands are called. */}}
{{- define "stromboli.components" -}}
admission: {object: {{ .Release.Name }}-admission, app: volcano-admission, container: admission, command: stromboli-webhooks, metrics: 8082}
controller: {object: {{ .Release.Name }}-controllers, app: volcano-controller, container: {{ .Release.Name }}-controllers, command: stromboli-controllers, metrics: 8081}
scheduler: {object: {{ .Release.Name }}-scheduler, app: volcano-scheduler, container: {{ .Release.Name }}-scheduler, command: stromboli-scheduler, metrics: 8080}
dashboard: {object: {{ .Release.Name }}-dashboard, app: volcano-dashboard, container: dashboard, command: stromboli-dashboard, metrics: 8083}
{{- end }}

{{/* One of them. Takes {root, component}. */}}
{{- define "stromboli.component" -}}
{{- index (include "stromboli.components" .root | fromYaml) .component | toYaml }}
{{- end }}

{{/* Labels of an object. Takes {root, component} or {root}; a component's labels win over the common ones. */}}
{{- define "stromboli.labels" -}}
{{- $own := dict "app.kubernetes.io/name" "stromboli" "app.kubernetes.io/instance" .root.Release.Name "app.kubernetes.io/version" .root.Chart.AppVersion "app.kubernetes.io/managed-by" .root.Release.Service }}
{{- $labels := merge (dict) $own (default dict .root.Values.custom.common_labels) }}
{{- if .component }}
{{- $component := include "stromboli.component" . | fromYaml }}
{{- $given := default dict (index .root.Values.custom (printf "%s_labels" .component)) }}
{{- $labels = merge (dict "app" $component.app "app.kubernetes.io/component" .component) $given $labels }}
{{- end }}
{{- toYaml $labels }}
{{- end }}

{{/* A value of a component, else the default of all components. Takes {root, component, name, own}. */}}
{{- define "stromboli.own-or-default" -}}
{{- $custom := .root.Values.custom }}
{{- $own := index $custom (default (printf "%s_%s" .component .name) .own) }}
{{- with (default (index $custom (printf "default_%s" .name)) $own) }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* Whether a component elects a leader: "true" or "false". */}}
{{- define "stromboli.elects" -}}
{{- $custom := .root.Values.custom }}
{{- or $custom.leader_elect_enable (gt (int (index $custom (printf "%s_replicas" .component))) 1) }}
{{- end }}

{{/* Image reference of a component. */}}
{{- define "stromboli.image" -}}
{{- $basic := .root.Values.basic }}
{{- $tag := coalesce (index $basic (printf "%s_image_tag_version" .component)) $basic.image_tag_version .root.Chart.AppVersion }}
{{- printf "%s/%s:%s" $basic.image_registry (index $basic (printf "%s_image_name" .component)) $tag }}
{{- end }}

{{/* Scheduler names as a JSON list. */}}
{{- define "stromboli.scheduler-names" -}}
{{- $names := default "volcano" .Values.custom.scheduler_name }}
{{- ternary $names (list $names) (kindIs "slice" $names) | toJson }}
{{- end }}

{{/* Arguments that all processes take, as list items. Takes {root, component}. */}}
{{- define "stromboli.common-args" -}}
{{- $custom := .root.Values.custom }}
- --logtostderr
- --enable-healthz=true
{{- if and $custom.scheduler_name (ne .component "dashboard") }}
{{- range include "stromboli.scheduler-names" .root | fromJsonArray }}
- --scheduler-name={{ . }}
{{- end }}
{{- end }}
{{- if ne $custom.log_format "text" }}
- --log-format={{ $custom.log_format }}
{{- end }}
- -v={{ index $custom (printf "%s_log_level" .component) }}
{{- with index $custom (printf "%s_extra_args" .component) }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Arguments of leader election, as list items. Takes {root, component}. */}}
{{- define "stromboli.leader-args" -}}
- --leader-elect={{ include "stromboli.elects" . }}
{{- if eq "true" (include "stromboli.elects" .) }}
- --leader-elect-resource-namespace={{ .root.Release.Namespace }}
{{- end }}
{{- end }}

{{/* Enabled admission paths as a JSON list. */}}
{{- define "stromboli.admissions" -}}
{{- $paths := list }}
{{- range splitList "," (nospace .Values.custom.enabled_admissions) }}
{{- if . }}{{ $paths = append $paths . }}{{ end }}
{{- end }}
{{- uniq $paths | toJson }}
{{- end }}
