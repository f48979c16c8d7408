/** The models of an organization: weights by name, each version with its state and its users. */
import {
  infiniteQueryOptions,
  useQueryClient,
  useSuspenseInfiniteQuery,
} from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type {
  ListModelsResponseJson,
  ModelService,
  ModelVersionJson,
} from "../../../../../gen/tessera/v1/model_pb.js";
import { PAGES } from "../../api/pages.ts";
import { createClient } from "../../api/rpc.ts";
import { useOrganization } from "../../api/session.ts";
import { ShowMore } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { duration } from "../../ui/duration.ts";
import { Empty } from "../../ui/empty.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Page } from "../../ui/page.tsx";
import { bytes, perSecond } from "../../ui/quantity.ts";
import { Status } from "../../ui/status.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toasts.tsx";

export function Models() {
  const organization = useOrganization();
  const list = useSuspenseInfiniteQuery(modelsOf(organization));
  const [deleting, setDeleting] = useState<ModelVersionJson>();
  const versions = versionsOf(list.data.pages);
  return (
    <Page title="Models" description="Weights by name, in versions that never change.">
      {versions.length === 0 ? (
        <Empty inPage isCard title="No models yet">
          <p>
            Deployments load a model by its name; the platform brings its files to their workers.
          </p>
          <h3>Push a folder</h3>
          <Command text="npx tessera-platform model push ./weights --name reader" />
          <h3>Import from Hugging Face</h3>
          <Command text="npx tessera-platform model import hf://Qwen/Qwen3-0.6B" />
          <h3>Name it in your service, and load its files</h3>
          <Command text='@service(models={"reader": "model://reader"})' />
          <Command text='model_path("reader")' />
          <a href="/docs/models.html">How models work</a>
        </Empty>
      ) : (
        <DataTable
          label="Models"
          items={versions}
          keyOf={nameOf}
          columns={[
            { name: "Name", cell: nameOf },
            { name: "State", cell: (one) => <State version={one} /> },
            {
              name: "Size",
              isNumber: true,
              cell: ({ sizeBytes }) => bytes(Number(sizeBytes ?? 0)),
            },
            { name: "Source", narrow: "unnamed", cell: (one) => <Source version={one} /> },
            { name: "Used by", cell: (one) => <Users version={one} /> },
            {
              name: "Created",
              cell: ({ createdAt }) => createdAt !== undefined && <Time at={createdAt} />,
            },
          ]}
          actions={(one) => (
            <Menu
              id={`model-${nameOf(one)}`}
              label={`Actions for ${nameOf(one)}`}
              items={[{ label: "Delete", isDangerous: true, run: () => setDeleting(one) }]}
            />
          )}
        />
      )}
      <ShowMore of={list} />
      {deleting !== undefined && (
        <DeleteVersion version={deleting} onClose={() => setDeleting(undefined)} />
      )}
    </Page>
  );
}

interface VersionProps {
  readonly version: ModelVersionJson;
}

const nameOf = ({ model = "", version = 0 }: ModelVersionJson): string => `${model}@${version}`;

function State({ version }: VersionProps) {
  const { state, reason, warnings = [] } = version;
  if (isImporting(version)) {
    return (
      <>
        <Status tone="working">importing</Status>
        <span className="secondary">{progressOf(version)}</span>
      </>
    );
  }
  return state === "MODEL_STATE_FAILED" ? (
    <>
      <Status tone="bad">failed</Status>
      <span className="secondary">{reason}</span>
    </>
  ) : (
    <>
      <Status tone={warnings.length === 0 ? "good" : "warning"}>ready</Status>
      {warnings.map((text) => (
        <span key={text} className="secondary">
          {text}
        </span>
      ))}
    </>
  );
}

/** Such as `41 %, 12.5 MiB/s, 2 min 3 s left`. */
function progressOf(version: ModelVersionJson): string {
  const [done, size, rate] = [version.bytesDone, version.sizeBytes, version.bytesPerSecond].map(
    (text) => Number(text ?? 0),
  ) as [number, number, number];
  const percent = size === 0 ? 100 : Math.floor((done / size) * 100);
  const left = version.timeLeft === undefined ? undefined : Number.parseFloat(version.timeLeft);
  return [
    `${percent} %`,
    ...(rate > 0 ? [perSecond(bytes)(rate)] : []),
    ...(left === undefined ? [] : [`${duration(left * 1_000)} left`]),
  ].join(", ");
}

function Source({ version: { source, commit, createdBy } }: VersionProps) {
  return (
    <>
      {source || "pushed"}
      <span className="secondary">{commit ? commit.slice(0, 12) : `by ${createdBy}`}</span>
    </>
  );
}

function Users({ version: { deployments = [] } }: VersionProps) {
  const organization = useOrganization();
  return deployments.length === 0
    ? "nothing"
    : deployments.map((deployment) => (
        <Link
          key={deployment}
          className="secondary"
          to="/o/$organization/deployments/$deployment"
          params={{ organization, deployment }}
        >
          {deployment}
        </Link>
      ));
}

function DeleteVersion({ version, onClose }: VersionProps & { onClose(): void }) {
  const organization = useOrganization();
  const queryClient = useQueryClient();
  const toast = useToast();
  const name = nameOf(version);
  return (
    <Confirm
      title={`Delete ${name}?`}
      action="Delete"
      run={() =>
        models.deleteModel({
          organization,
          model: version.model ?? "",
          version: version.version ?? 0,
        })
      }
      onDone={() => {
        void queryClient.invalidateQueries({ queryKey: ["models", organization] });
        toast(`Deleted ${name}`);
        onClose();
      }}
      onClose={onClose}
    >
      <p>
        Files that nothing else has are deleted an hour later. It is refused while a revision of a
        deployment has it.
      </p>
    </Confirm>
  );
}

// Reads of models, again while any of them is fetched.

/** Of its own, because the other pages do not call it. */
const models = createClient<typeof ModelService>("tessera.v1.ModelService");

/** Models that are read at once; more come on demand. */
const MAX_MODELS_PER_PAGE = 100;
/** How often they are read again while one of them is fetched. */
const IMPORTING_POLL_INTERVAL_MS = 1_000;
/** How often they are read again otherwise. */
const MODELS_POLL_INTERVAL_MS = 30_000;

const modelsOf = (organization: string) =>
  infiniteQueryOptions({
    queryKey: ["models", organization],
    queryFn: ({ pageParam, signal }) =>
      models.listModels(
        { organization, pageSize: MAX_MODELS_PER_PAGE, pageToken: pageParam },
        { signal },
      ),
    ...PAGES,
    refetchInterval: ({ state }) =>
      versionsOf(state.data?.pages).some(isImporting)
        ? IMPORTING_POLL_INTERVAL_MS
        : MODELS_POLL_INTERVAL_MS,
  });

/** The versions of all models, by name, newest first. */
const versionsOf = (pages: readonly ListModelsResponseJson[] = []): readonly ModelVersionJson[] =>
  pages.flatMap((page) => (page.models ?? []).flatMap(({ versions = [] }) => versions));

const isImporting = ({ state }: ModelVersionJson): boolean => state === "MODEL_STATE_IMPORTING";
