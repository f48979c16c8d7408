/**
 * The first steps of an organization, each with a command and a tick once it is done. Once most of
 * them are done, what is left is one line that opens.
 */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import type { GetTaskStatsResponseJson } from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { membersOf } from "../../api/members.ts";
import { useOrganization } from "../../api/session.ts";
import { tokensOf } from "../../api/tokens.ts";
import { Command } from "../../ui/command.tsx";
import { Segments } from "../../ui/segments.tsx";
import "./first-steps.css";

/** Open steps that are one line: the page is for what runs by then. */
const MAX_FOLDED_STEPS = 2;

const LANGUAGES = ["TypeScript", "Python"] as const;

interface FirstStepsProps {
  readonly deployments: readonly DeploymentJson[];
  readonly stats: GetTaskStatsResponseJson;
}

interface Step {
  readonly title: string;
  readonly isDone: boolean;
  readonly how: ReactNode;
}

/** Nothing once all of them are done. */
export function FirstSteps({ deployments, stats }: FirstStepsProps) {
  const organization = useOrganization();
  const [language, setLanguage] = useState<(typeof LANGUAGES)[number]>("TypeScript");
  const { data: tokens } = useInfiniteQuery(tokensOf(organization));
  const { data: members = [] } = useQuery(membersOf(organization));
  const all = (tokens?.pages ?? []).flatMap((page) => page.tokens ?? []);
  const may = (access: string): boolean =>
    all.some((token) => token.access?.some((one) => one === access));
  const [first] = deployments;
  const { succeeded = 0, failed = 0 } = stats.total ?? {};
  const service = language === "Python" ? "service.py" : "service.ts";
  const name = first?.name ?? "my-service";
  const isLoggedIn = may("TOKEN_ACCESS_DEVELOPER_OPERATIONS");
  const steps: readonly Step[] = [
    {
      title: "Make a service",
      isDone: deployments.length > 0,
      how: (
        <>
          <Command
            text={`npx tessera-platform init ${name} --language ${language.toLowerCase()}`}
          />
          <p className="secondary">
            <a href={`/docs/${language.toLowerCase()}-services.html`}>What a service can have</a>
          </p>
        </>
      ),
    },
    {
      title: "Sign in on the command line",
      isDone: isLoggedIn,
      how: <Command text={`npx tessera cloud login --endpoint ${location.origin}`} />,
    },
    {
      title: "Deploy it",
      isDone: deployments.length > 0,
      how: <Command text={`npx tessera deploy ${service}`} />,
    },
    {
      title: "Call it",
      isDone: succeeded + failed > 0,
      how:
        first === undefined ? (
          <p className="secondary">The deploy prints a line of curl for it.</p>
        ) : (
          <Link
            to="/o/$organization/deployments/$deployment/playground"
            params={{ organization, deployment: name }}
          >
            Open its playground
          </Link>
        ),
    },
    {
      title: "Give a program a token",
      isDone: may("TOKEN_ACCESS_PROTECTED_ENDPOINT"),
      how: <Command text={`npx tessera token create my-program --deployment ${name}`} />,
    },
    {
      title: "Invite a colleague",
      isDone: members.length > 1,
      how: (
        <Link to="/o/$organization/members" params={{ organization }}>
          Open the members
        </Link>
      ),
    },
  ];
  const open = steps.filter(({ isDone }) => !isDone);
  if (tokens === undefined || open.length === 0) {
    return null;
  }
  const isFolded = open.length <= MAX_FOLDED_STEPS;
  const list = (
    <ol className="first-steps">
      {steps.map(({ title, isDone, how }) => (
        <li key={title} data-done={isDone || undefined}>
          <h3>
            {title}
            {isDone && <span className="hidden"> (done)</span>}
          </h3>
          {!isDone && how}
        </li>
      ))}
    </ol>
  );
  return (
    <section aria-labelledby="steps">
      <div className="first-steps-title">
        <h2 id="steps">First steps</h2>
        <span className="secondary">
          {steps.length - open.length} of {steps.length} done
        </span>
        {deployments.length === 0 && (
          <Segments
            label="Language"
            choices={LANGUAGES}
            value={language}
            onChange={(chosen) => setLanguage(chosen)}
          />
        )}
      </div>
      {isFolded ? (
        <details>
          <summary>Left: {open.map(({ title }) => title).join(", ")}</summary>
          {list}
        </details>
      ) : (
        list
      )}
    </section>
  );
}
