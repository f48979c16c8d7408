/** Identifies a deployment. */
export interface DeploymentKey {
  readonly organizationId: string;
  readonly deploymentId: string;
}
