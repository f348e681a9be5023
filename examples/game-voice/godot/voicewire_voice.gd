# A character's voice in Godot 4: a gateway's socket -> AudioStreamGenerator and mouth shapes, on one clock.
#   godot --path examples/game-voice/godot        (a gateway at 127.0.0.1:8080: npm start)
extends Node

signal viseme_shown(viseme: String)
signal utterance_done(utterance_id: String, outcome: String)

const RATE := 24000
## Lips move before the sound.
const LEAD_MS := 60.0
## Frames that wait for room in the generator, 20 ms each; the gateway sends 300 ms ahead.
const MAX_FRAMES := 250
## How far each of the 15 shapes opens the mouth.
const OPENNESS := {
	"sil": 0.0, "PP": 0.0, "FF": 0.12, "TH": 0.25, "DD": 0.2, "kk": 0.25, "CH": 0.2, "SS": 0.1,
	"nn": 0.18, "RR": 0.2, "aa": 0.9, "E": 0.5, "ih": 0.3, "oh": 0.6, "ou": 0.3,
}

@export var gateway := "ws://127.0.0.1:8080"
@export var session := "godot"

var _socket := WebSocketPeer.new()
var _playback: AudioStreamGeneratorPlayback
var _frames: Array[PackedByteArray] = []
var _shapes: Array[Dictionary] = []
## Timeline position behind the last sample that was given to the generator, ms.
var _pushed_to_ms := 0.0
var _shown := "sil"


func _ready() -> void:
	# The default of 64 KB is two seconds of audio: a stalled frame of the game would lose messages.
	_socket.inbound_buffer_size = 1 << 20
	_socket.connect_to_url("%s/live/%s?format=pcm_24000&events=visemes" % [gateway, session])
	$Player.play()
	_playback = $Player.get_stream_playback()
	$Line.text_submitted.connect(speak)


func speak(text: String) -> void:
	_send({"type": "speak", "text": text})


func interrupt() -> void:
	_send({"type": "interrupt"})


func _send(message: Dictionary) -> void:
	if _socket.get_ready_state() == WebSocketPeer.STATE_OPEN:
		_socket.send_text(JSON.stringify(message))


func _process(_delta: float) -> void:
	_socket.poll()
	while _socket.get_available_packet_count() > 0:
		var packet := _socket.get_packet()
		if _socket.was_string_packet():
			_take(JSON.parse_string(packet.get_string_from_utf8()))
		elif _frames.size() < MAX_FRAMES:
			_frames.append(packet)
		else:
			_pushed_to_ms += packet.size() / 2.0 / RATE * 1000.0
	_play()
	_move_mouth()


func _take(event: Dictionary) -> void:
	match event.type:
		"hello": _on_hello(event)
		"viseme": _on_viseme(event)
		"gap": _on_gap(event)
		"interrupted": _on_interrupted(event)
		"utterance.done": _on_utterance_done(event)
		"error": _on_error(event)


func _on_hello(event: Dictionary) -> void:
	_pushed_to_ms = event.audio.start_ms


func _on_viseme(event: Dictionary) -> void:
	for i in event.visemes.size():
		var start: float = event.vtimes_ms[i]
		_shapes.append({"name": event.visemes[i], "start": start, "end": start + event.vdurations_ms[i]})


func _on_gap(event: Dictionary) -> void:
	_pushed_to_ms += event.ms


func _on_interrupted(event: Dictionary) -> void:
	_frames.clear()
	$Player.stop()
	$Player.play()
	_playback = $Player.get_stream_playback()
	_shapes = _shapes.filter(func(shape): return shape.start < event.at_ms)
	if event.next_ms != null:
		_pushed_to_ms = event.next_ms


func _on_utterance_done(event: Dictionary) -> void:
	utterance_done.emit(event.utterance_id, event.outcome)


func _on_error(event: Dictionary) -> void:
	push_warning("%s: %s" % [event.code, event.message])


func _play() -> void:
	while not _frames.is_empty():
		var bytes := _frames[0]
		var count := bytes.size() / 2
		if _playback.get_frames_available() < count:
			return
		var samples := PackedVector2Array()
		samples.resize(count)
		for i in count:
			var value := bytes.decode_s16(i * 2) / 32768.0
			samples[i] = Vector2(value, value)
		_playback.push_buffer(samples)
		_pushed_to_ms += count * 1000.0 / RATE
		_frames.pop_front()


func _move_mouth() -> void:
	var capacity: float = $Player.stream.buffer_length * RATE
	var waiting := capacity - _playback.get_frames_available()
	var heard_ms := _pushed_to_ms - waiting * 1000.0 / RATE - AudioServer.get_output_latency() * 1000.0
	var wanted := "sil"
	_shapes = _shapes.filter(func(shape): return shape.end > heard_ms - 1000.0)
	for shape in _shapes:
		if shape.start <= heard_ms + LEAD_MS and heard_ms + LEAD_MS < shape.end:
			wanted = shape.name
	if wanted != _shown:
		_shown = wanted
		viseme_shown.emit(wanted)
	$Mouth.size.y = lerpf($Mouth.size.y, 4.0 + 60.0 * OPENNESS.get(wanted, 0.0), 0.35)
