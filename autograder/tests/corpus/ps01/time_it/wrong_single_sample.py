"""3 points: times one launch, whatever was asked for; enough where few samples are wanted."""


def time_it(device, work, repeats):
    for _ in range(5):
        device.launch(work)
    device.synchronize()
    start = device.clock()
    device.launch(work)
    device.synchronize()
    return device.clock() - start
