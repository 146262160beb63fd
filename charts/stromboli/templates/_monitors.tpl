{{/* Labels of a monitoring add-on. Takes {root, name}. */}}
{{- define "stromboli.monitor-labels" -}}
{{- merge (dict "app" .name "app.kubernetes.io/component" "monitoring") (include "stromboli.labels" (dict "root" .root) | fromYaml) | toYaml }}
{{- end }}

{{/*
Deployment and Service of a monitoring add-on, one replica without persistence. Takes {root, name, deployment, service, image,
user, args, env, port, ready, live, port, exposed ({port, nodePort}), configs (name of a mount to {path, configMap}), data (a
path to write to), resources, selector, account, checksum}; args and env are lists.
*/}}
{{- define "stromboli.monitor" }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ default .name .deployment }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "stromboli.monitor-labels" . | nindent 4 }}
spec:
  replicas: 1
  selector:
    matchLabels:
      app: {{ .name }}
  template:
    metadata:
      labels:
        {{- include "stromboli.monitor-labels" . | nindent 8 }}
      {{- with .checksum }}
      annotations:
        checksum/config: {{ sha256sum . }}
      {{- end }}
    spec:
      {{- if .account }}
      serviceAccountName: {{ .account }}
      {{- else }}
      automountServiceAccountToken: false
      {{- end }}
      {{- with .root.Values.basic.image_pull_secret }}
      imagePullSecrets:
      - name: {{ . }}
      {{- end }}
      {{- range $field, $name := dict "affinity" "affinity" "tolerations" "tolerations" }}
      {{- with index $.root.Values.custom (printf "default_%s" $name) }}
      {{ $field }}:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
      {{- with default .root.Values.custom.default_ns .selector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        fsGroup: {{ .user }}
        seccompProfile:
          type: RuntimeDefault
      containers:
      - name: {{ .name }}
        image: {{ .image }}
        imagePullPolicy: {{ .root.Values.basic.image_pull_policy }}
        {{- with .args }}
        args:
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- with .env }}
        env:
        {{- toYaml . | nindent 8 }}
        {{- end }}
        ports:
        - name: http
          containerPort: {{ .port }}
        readinessProbe:
          httpGet: {path: {{ .ready }}, port: http}
        livenessProbe:
          httpGet: {path: {{ .live }}, port: http}
          initialDelaySeconds: 30
          timeoutSeconds: 5
        {{- with .resources }}
        resources:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        securityContext:
          runAsNonRoot: true
          runAsUser: {{ .user }}
          readOnlyRootFilesystem: true
          allowPrivilegeEscalation: false
          capabilities:
            drop: [ALL]
        volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- with .data }}
        - name: data
          mountPath: {{ . }}
        {{- end }}
        {{- range $name, $config := .configs }}
        - name: {{ $name }}
          mountPath: {{ $config.path }}
          readOnly: true
        {{- end }}
      volumes:
      - name: tmp
        emptyDir: {}
      {{- if .data }}
      - name: data
        emptyDir: {}
      {{- end }}
      {{- range $name, $config := .configs }}
      - name: {{ $name }}
        configMap:
          name: {{ $config.configMap }}
      {{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ default .name .service }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "stromboli.monitor-labels" . | nindent 4 }}
spec:
  {{- include "stromboli.ip-families" .root | nindent 2 }}
  {{- if .exposed.nodePort }}
  type: NodePort
  {{- end }}
  ports:
  - name: http
    port: {{ .exposed.port }}
    targetPort: http
    {{- with .exposed.nodePort }}
    nodePort: {{ . }}
    {{- end }}
  selector:
    app: {{ .name }}
{{- end }}

{{/* ServiceAccount and ClusterRole of a monitoring add-on, bound. Takes {root, name, rules (text of a YAML list)}. */}}
{{- define "stromboli.monitor-role" }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "stromboli.monitor-labels" . | nindent 4 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .name }}
  labels:
    {{- include "stromboli.monitor-labels" . | nindent 4 }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .name }}
  labels:
    {{- include "stromboli.monitor-labels" . | nindent 4 }}
subjects:
- kind: ServiceAccount
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ .name }}
{{- end }}
