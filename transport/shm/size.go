package shm

import "os"

// SegmentBytes returns how many bytes of /dev/shm a job takes once its rank 0 has called Join,
// without regions and groups. ranks must be at least 1.
func SegmentBytes(ranks int) int {
	h := header{ranks: ranks, arena: DefaultGeometry(ranks).layout(ranks).total, page: os.Getpagesize()}
	return h.total()
}
