{{- define "tessera.labels" -}}
app.kubernetes.io/name: tessera
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tessera.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "tessera.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "tessera.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "tessera.envFrom" -}}
{{- if .Values.existingSecret }}
envFrom:
  - secretRef: { name: {{ .Values.existingSecret | quote }} }
{{- end }}
{{- end }}

{{/* The template of the nodes' pods, of the Deployment as of the StatefulSet. */}}
{{- define "tessera.pod" -}}
metadata:
  labels: {{- include "tessera.labels" . | nindent 4 }}
    app.kubernetes.io/component: node
  annotations: {{- toYaml .Values.podAnnotations | nindent 4 }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  securityContext: {{- include "tessera.podSecurity" . | nindent 4 }}
  containers:
    - name: tessera
      image: {{ include "tessera.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      securityContext: {{- include "tessera.security" . | nindent 8 }}
      {{- include "tessera.envFrom" . | nindent 6 }}
      env:
        - { name: TESSERA_DATA, value: /data }
        {{- if and (eq .Values.database "postgres") .Values.migration.enabled }}
        - { name: TESSERA_MIGRATE, value: check }
        {{- end }}
        {{- range $name, $value := .Values.env }}
        - { name: {{ $name | quote }}, value: {{ $value | quote }} }
        {{- end }}
      ports:
        - { name: http, containerPort: 3000 }
      # Endpoints learn of the end a moment after the pod does; after this the node
      # serves for its drain delay, unready.
      lifecycle:
        preStop:
          exec: { command: [node, -e, "setTimeout(() => {}, 3000)"] }
      startupProbe:
        httpGet: { path: /livez, port: http }
        periodSeconds: 2
        failureThreshold: 90
      livenessProbe:
        httpGet: { path: /livez, port: http }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: { path: /readyz, port: http }
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: 1
      resources: {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - { name: data, mountPath: /data }
        - { name: tmp, mountPath: /tmp }
  volumes:
    - { name: tmp, emptyDir: {} }
    {{- if eq .Values.database "postgres" }}
    - { name: data, emptyDir: {} }
    {{- end }}
  nodeSelector: {{- toYaml .Values.nodeSelector | nindent 4 }}
  tolerations: {{- toYaml .Values.tolerations | nindent 4 }}
  {{- if .Values.affinity }}
  affinity: {{- toYaml .Values.affinity | nindent 4 }}
  {{- else }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- include "tessera.labels" . | nindent 10 }}
  {{- end }}
{{- end }}
