/**
 * The media type of an object of arguments by name, also for an endpoint whose body is otherwise
 * the value of its one argument. In it go the `arguments` of messages.
 */
export const ARGUMENTS_TYPE = "application/vnd.tessera.arguments+json";
