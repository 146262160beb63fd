{{/*
A dashboard as Grafana wants it, from its short form in monitoring/dashboards: {title, uid, variables, panels}, where a
panel is {title, type, unit, width, height, queries: [{expr, legend}]}. Panels flow from left to right, 24 columns a row.
*/}}
{{- define "stromboli.dashboard" -}}
{{- $source := dict "type" "prometheus" "uid" "${datasource}" }}
{{- $variables := list (dict "name" "datasource" "type" "datasource" "query" "prometheus") }}
{{- range .variables }}
{{- $query := printf "label_values(%s, %s)" .metric .label }}
{{- $variables = append $variables (dict "name" .name "type" "query" "datasource" $source "query" $query "refresh" 2 "includeAll" true "multi" true "allValue" ".*" "current" (dict "text" "All" "value" "$__all")) }}
{{- end }}
{{- $panels := list }}
{{- $x := 0 }}{{ $y := 0 }}
{{- range $number, $panel := .panels }}
{{- $width := default 12 $panel.width | int }}
{{- $height := default 8 $panel.height | int }}
{{- if gt (add $x $width) 24 }}{{ $x = 0 }}{{ $y = add $y $height }}{{ end }}
{{- $targets := list }}
{{- range $index, $query := $panel.queries }}
{{- $targets = append $targets (dict "refId" (printf "Q%d" $index) "datasource" $source "expr" $query.expr "legendFormat" (default "" $query.legend)) }}
{{- end }}
{{- $panels = append $panels (dict "id" (add1 $number) "title" $panel.title "type" (default "timeseries" $panel.type) "datasource" $source "targets" $targets "gridPos" (dict "x" $x "y" $y "w" $width "h" $height) "fieldConfig" (dict "defaults" (dict "unit" (default "short" $panel.unit)) "overrides" list)) }}
{{- $x = add $x $width }}
{{- end }}
{{- dict "title" .title "uid" .uid "tags" (list "volcano" "stromboli") "schemaVersion" 39 "editable" true "refresh" "30s" "time" (dict "from" "now-6h" "to" "now") "templating" (dict "list" $variables) "panels" $panels | toPrettyJson }}
{{- end }}

{{/* All dashboards as data of a ConfigMap: one JSON file each. */}}
{{- define "stromboli.dashboards" -}}
{{- range $path, $text := .Files.Glob "monitoring/dashboards/*.yaml" }}
{{ base $path | trimSuffix ".yaml" }}.json: |
  {{- include "stromboli.dashboard" ($text | toString | fromYaml) | nindent 2 }}
{{- end }}
{{- end }}
