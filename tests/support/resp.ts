/** The Redis protocol, as the fault runs read it too. */
export { encodeCommand, type Frame, RespParser, type RespValue } from "../../verify/src/faults/topology/resp.js";
