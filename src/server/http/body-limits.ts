/** JSON body of a REST method, and RPC message, unless its method or service says otherwise: gRPC's own limit. */
export const DEFAULT_MAX_BODY_BYTES = 4 * 1024 * 1024;
