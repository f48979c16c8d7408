#!/bin/sh
# Makes the recording in `samples`: two sentences with hiss before, between and after them.
# Needs espeak-ng and ffmpeg.
set -eu
cd "$(dirname "$0")/samples"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
espeak-ng -v en-gb -s 150 -w "$work/first.wav" "The harbour office opens at half past eight."
espeak-ng -v en-us -s 140 -w "$work/second.wav" "Ring the bell twice, and wait for the pilot."
hiss() { echo "anoisesrc=d=$1:a=0.004:r=16000:seed=1"; }
ffmpeg -v error -y -i "$work/first.wav" -i "$work/second.wav" -filter_complex \
  "$(hiss 1.5)[a];[0:a]aresample=16000[b];$(hiss 2)[c];[1:a]aresample=16000[d];$(hiss 1)[e];[a][b][c][d][e]concat=n=5:v=0:a=1" \
  -ac 1 -b:a 24k two-voices.mp3
