package ccl
import "time"
const everything = `version: 1
defaults: {algorithm: fancy, transport: local, timeout: 90s, world_size: 4}
algorithms:
  plain: {module: plain}
  fancy:
    module: fancy
    topology: ring_1d
    world_size: 4
    params: {chunk: 64KiB, depth: 3, fast: true, label: "a b", pause: 5ms}
topology: {kind: ring_1d, count: 8}
rules:
  - {collective: all_reduce, bytes: "16MiB-", ranks: "3-", dtype: float32, op: sum, algorithm: fancy}
  - {bytes: 1KiB-16MiB, ranks: 4, algorithm: plain}
  - {algorithm: plain}
`
const parseLimit = 100*time.Millisecond
func testRegistry() *Registry {return NewRegistry()}
