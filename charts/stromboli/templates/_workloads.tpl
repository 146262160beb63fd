{{/*
Deployment of a component. Takes {root, component, args, volumes, mounts, scheme}: args, volumes and mounts are texts of
YAML lists, scheme that of the health endpoint.
*/}}
{{- define "stromboli.deployment" -}}
{{- $custom := .root.Values.custom }}
{{- $component := include "stromboli.component" . | fromYaml }}
{{- $health := dict "port" "health" "scheme" (default "HTTP" .scheme) }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $component.object }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "stromboli.labels" . | nindent 4 }}
spec:
  replicas: {{ index $custom (printf "%s_replicas" .component) }}
  selector:
    matchLabels:
      app: {{ $component.app }}
  {{- if and (has .component (list "controller" "scheduler")) (eq "false" (include "stromboli.elects" .)) }}
  # Without leader election two must never run at the same time.
  strategy:
    type: Recreate
  {{- end }}
  template:
    metadata:
      labels:
        {{- $podLabels := default dict (index $custom (printf "%s_podLabels" .component)) }}
        {{- merge (dict "app" $component.app) $podLabels (include "stromboli.labels" . | fromYaml) | toYaml | nindent 8 }}
    spec:
      serviceAccountName: {{ $component.object }}
      {{- if ne .component "dashboard" }}
      priorityClassName: system-cluster-critical
      {{- end }}
      # Longer than the process takes to stop in order: reviews in flight have 30 seconds.
      terminationGracePeriodSeconds: 45
      {{- if gt (int (index $custom (printf "%s_replicas" .component))) 1 }}
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector:
          matchLabels:
            app: {{ $component.app }}
      {{- end }}
      {{- with .root.Values.basic.image_pull_secret }}
      imagePullSecrets:
      - name: {{ . }}
      {{- end }}
      {{- range $field, $name := dict "affinity" "affinity" "tolerations" "tolerations" "nodeSelector" "ns" "securityContext" "sc" }}
      {{- with include "stromboli.own-or-default" (dict "root" $.root "component" $.component "name" $name) }}
      {{ $field }}:
        {{- . | nindent 8 }}
      {{- end }}
      {{- end }}
      containers:
      - name: {{ $component.container }}
        image: {{ include "stromboli.image" . }}
        imagePullPolicy: {{ .root.Values.basic.image_pull_policy }}
        command: [{{ $component.command }}]
        args:
          {{- .args | nindent 10 }}
        env:
        - name: KUBE_POD_NAMESPACE
          value: {{ .root.Release.Namespace }}
        - name: HELM_RELEASE_NAME
          value: {{ .root.Release.Name }}
        {{- with index $custom (printf "%s_extra_env" .component) }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        ports:
        - name: health
          containerPort: 11251
        - name: metrics
          containerPort: {{ $component.metrics }}
        {{- if eq .component "admission" }}
        - name: reviews
          containerPort: {{ .root.Values.basic.admission_port }}
        {{- else if eq .component "dashboard" }}
        - name: page
          containerPort: 8090
        {{- end }}
        startupProbe:
          httpGet: {{ merge (dict "path" "/healthz") $health | toJson }}
          periodSeconds: 2
          failureThreshold: 60
        livenessProbe:
          httpGet: {{ merge (dict "path" "/healthz") $health | toJson }}
          periodSeconds: 10
          timeoutSeconds: 5
        readinessProbe:
          httpGet: {{ merge (dict "path" "/readyz") $health | toJson }}
          periodSeconds: 5
          timeoutSeconds: 5
        {{- with index $custom (printf "%s_resources" .component) }}
        resources:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- with include "stromboli.own-or-default" (dict "root" .root "component" .component "name" "csc" "own" (printf "%s_main_csc" .component)) }}
        securityContext:
          {{- . | nindent 10 }}
        {{- end }}
        volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- with .mounts }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with index $custom (printf "%s_extra_volume_mounts" .component) }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      volumes:
      - name: tmp
        emptyDir: {}
      {{- with .volumes }}
      {{- . | nindent 6 }}
      {{- end }}
      {{- with index $custom (printf "%s_extra_volumes" .component) }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
{{- end }}

{{/* ServiceAccount and PodDisruptionBudget of a component. Takes {root, component}. */}}
{{- define "stromboli.companions" -}}
{{- $component := include "stromboli.component" . | fromYaml }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $component.object }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "stromboli.labels" . | nindent 4 }}
{{- if .root.Values.custom.pod_disruption_budget_enable }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $component.object }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "stromboli.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app: {{ $component.app }}
{{- end }}
{{- end }}

{{/* The addresses that every Service has, as fields of its spec. */}}
{{- define "stromboli.ip-families" -}}
{{- with .Values.service.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .Values.service.ipFamilies }}
ipFamilies:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Service of a component. Takes {root, component, ports (text of a YAML list), scraped (bool)}. */}}
{{- define "stromboli.service" -}}
{{- $component := include "stromboli.component" . | fromYaml }}
apiVersion: v1
kind: Service
metadata:
  name: {{ $component.object }}-service
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "stromboli.labels" . | nindent 4 }}
  {{- if .scraped }}
  annotations:
    prometheus.io/path: /metrics
    prometheus.io/port: {{ $component.metrics | quote }}
    prometheus.io/scrape: "true"
  {{- end }}
spec:
  {{- include "stromboli.ip-families" .root | nindent 2 }}
  ports:
    {{- .ports | nindent 4 }}
  selector:
    app: {{ $component.app }}
{{- end }}

{{/*
ClusterRole and Role of a component with their bindings. Takes {root, component, cluster, namespaced}: the rules, texts
of YAML lists.
*/}}
{{- define "stromboli.roles" -}}
{{- $component := include "stromboli.component" . | fromYaml }}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $component.object }}
  labels:
    {{- include "stromboli.labels" . | nindent 4 }}
rules:
  {{- .cluster | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $component.object }}-role
  labels:
    {{- include "stromboli.labels" . | nindent 4 }}
subjects:
- kind: ServiceAccount
  name: {{ $component.object }}
  namespace: {{ .root.Release.Namespace }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $component.object }}
{{- if .namespaced }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $component.object }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "stromboli.labels" . | nindent 4 }}
rules:
  {{- .namespaced | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $component.object }}-role
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "stromboli.labels" . | nindent 4 }}
subjects:
- kind: ServiceAccount
  name: {{ $component.object }}
  namespace: {{ .root.Release.Namespace }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $component.object }}
{{- end }}
{{- end }}

{{/* Rules for one Lease. Takes its name. */}}
{{- define "stromboli.lease-rules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ . }}]
  verbs: [get, update]
{{- end }}
