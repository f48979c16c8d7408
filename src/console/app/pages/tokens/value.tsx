/** The value of a token, the command that logs in with it, and a call that uses it. */
import { useQuery } from "@tanstack/react-query";
import type { TokenJson } from "../../../../../gen/tessera/v1/token_pb.js";
import { deploymentsOf } from "../../api/deployments.ts";
import { useOrganization } from "../../api/session.ts";
import { isOrganizations } from "../../api/tokens.ts";
import { joinCommand, labelsOf } from "../../api/workers.ts";
import { Command } from "../../ui/command.tsx";
import { Notice } from "../../ui/notice.tsx";

interface TokenValueProps {
  readonly token: TokenJson;
  readonly value: string;
  /** Empty or undefined: it cannot log in. */
  readonly loginCommand?: string | undefined;
}

export function TokenValue({ token, value, loginCommand }: TokenValueProps) {
  const organization = useOrganization();
  const { data: deployments = [] } = useQuery(deploymentsOf(organization));
  const { access = [], allDeployments, deployments: named = [] } = token;
  const canCall = access.includes("TOKEN_ACCESS_PROTECTED_ENDPOINT");
  const called = deployments.find(({ name = "" }) => allDeployments || named.includes(name));
  return (
    <div className="token-value">
      <h3>Value</h3>
      <Command text={value} />
      {isOrganizations(token) ? (
        <Notice>Admins can show it again in the list.</Notice>
      ) : (
        <Notice kind="warning">Copy it now: it is not shown again.</Notice>
      )}
      {loginCommand && (
        <>
          <h3>Sign in on the command line</h3>
          <Command text={loginCommand} />
        </>
      )}
      {canCall && called?.url && (
        <>
          <h3>Call {called.name}</h3>
          <Command text={`curl ${called.url}/readyz -H "Authorization: Bearer ${value}"`} />
        </>
      )}
      {access.includes("TOKEN_ACCESS_WORKER") && called?.name && (
        <>
          <h3>Join a worker, on the other machine</h3>
          <Command text={joinCommand(called.name, value, labelsOf(called))} />
        </>
      )}
      {access.includes("TOKEN_ACCESS_LAUNCH") && (
        <>
          <h3>Start machines, where the launcher runs</h3>
          <Command
            text={`TESSERA_LAUNCH_TOKEN=${value} tessera launcher --join ${location.origin} --on exec`}
          />
        </>
      )}
      {token.monitoringUrl && (
        <>
          <h3>Read the metrics</h3>
          <Command
            text={`curl '${token.monitoringUrl}?match[]={__name__=~"tessera_.*"}' -H "Authorization: Bearer ${value}"`}
          />
        </>
      )}
    </div>
  );
}
