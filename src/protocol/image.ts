/**
 * The names of container images, which authors of services write, as Docker has them: a registry, a
 * repository in it, and a tag, a digest or both. They become arguments of skopeo, so an
 * option, a path or another transport is refused.
 */

/** Characters of the name of an image. */
const MAX_IMAGE_CHARACTERS = 512;

/** Where images are whose names have no registry. */
const DOCKER_HUB = "docker.io";

/** A host is told from the first part of a repository by its dot, its port, or by being `localhost`. */
const IMAGE =
  /^(?:(?<registry>(?=[^/]*[.:]|localhost\/)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?)\/)?(?<path>[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*)*)(?::(?<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@sha256:(?<digest>[0-9a-f]{64}))?$/;

export interface ImageName {
  /** The host of its registry, with the port where there is one. */
  readonly registry: string;
  /** Of registry and repository, such as `docker.io/library/debian`. */
  readonly name: string;
  /** Default: `latest`. */
  readonly tag: string;
  /** SHA-256 of its manifest, in hex; undefined: the tag says which one it is. */
  readonly digest: string | undefined;
}

/** The parts of an image's name; undefined for other text. */
export function parseImage(text: string): ImageName | undefined {
  const groups = text.length > MAX_IMAGE_CHARACTERS ? undefined : IMAGE.exec(text)?.groups;
  if (groups?.path === undefined) {
    return undefined;
  }
  const { registry = DOCKER_HUB, path, tag = "latest", digest } = groups;
  const isOfficial = registry === DOCKER_HUB && !path.includes("/");
  const name = `${registry}/${isOfficial ? "library/" : ""}${path}`;
  return { registry, name, tag, digest };
}

/** Why this is no name of an image; undefined when it is one. */
export function faultOfImage(image: unknown): string | undefined {
  return typeof image === "string" && parseImage(image) !== undefined
    ? undefined
    : `image is ${JSON.stringify(image)?.slice(0, 100)}, which is no name of a container image such as debian:12 or registry.example.com/acme/reader@sha256:… with 64 digits`;
}
