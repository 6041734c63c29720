//go:build !noasm

#include "textflag.h"

// func put(r, next *record)
TEXT ·put(SB), NOSPLIT, $0-16
	MOVQ  r+0(FP), DI
	MOVQ  next+8(FP), SI
	MOVQ  0(SI), AX
	MOVQ  AX, BX
	ORQ   $255, BX
	MOVQ  BX, 0(DI)
	MOVQ  8(SI), BX
	MOVQ  16(SI), CX
	MOVQ  24(SI), DX
	MOVOU 32(SI), X0 // not written by every call, so that the stores have left the store buffer
	MOVOU 48(SI), X1
	MOVQ  BX, 8(DI)
	MOVQ  CX, 16(DI)
	MOVQ  DX, 24(DI)
	MOVOU X0, 32(DI)
	MOVOU X1, 48(DI)
	MOVQ  AX, 0(DI)
	RET
