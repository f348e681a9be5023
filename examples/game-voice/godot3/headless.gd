# Without a window, for servers and tests (Godot 3): says a line, counts what comes, prints it as JSON and goes.
#   godot3-server -s examples/game-voice/godot3/headless.gd --gateway=ws://127.0.0.1:8080
extends SceneTree

var _client = WebSocketClient.new()
var _frames = 0
var _bytes = 0
var _visemes = []


func _init():
	var gateway = "ws://127.0.0.1:8080"
	for argument in OS.get_cmdline_args():
		if argument.begins_with("--gateway="):
			gateway = argument.split("=")[1]
	_client.connect("connection_established", self, "_on_connected")
	_client.connect("data_received", self, "_on_data")
	_client.connect("connection_error", self, "_on_failed")
	# Kilobytes and messages that wait between two polls.
	_client.set_buffers(1024, 4096, 64, 64)
	_client.connect_to_url(gateway + "/live/godot3?format=pcm_24000&pace=burst&events=visemes")


func _iteration(_delta):
	_client.poll()
	return false


func _on_connected(_protocol):
	_client.get_peer(1).set_write_mode(WebSocketPeer.WRITE_MODE_TEXT)
	_client.get_peer(1).put_packet(JSON.print({"type": "speak", "text": "My mouth moves."}).to_utf8())


func _on_failed():
	printerr("Can't reach the gateway. Start one with: npm start")
	quit()


func _on_data():
	var packet = _client.get_peer(1).get_packet()
	if not _client.get_peer(1).was_string_packet():
		_frames += 1
		_bytes += packet.size()
		return
	var event = JSON.parse(packet.get_string_from_utf8()).result
	if event.type == "viseme":
		_on_viseme(event)
	elif event.type == "utterance.done":
		_on_utterance_done(event)


func _on_viseme(event):
	_visemes += event.visemes


func _on_utterance_done(event):
	print(JSON.print({"outcome": event.outcome, "frames": _frames, "bytes": _bytes, "visemes": _visemes}))
	quit()
